"""`python -m slice_os` is the command `slice-os`."""

from slice_os.cli.main import main

if __name__ == "__main__":
    main()
