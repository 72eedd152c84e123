"""What keeps an index through its life: copies of it, and their way back."""

from slice_os.lifecycle.backup import backup as backup
from slice_os.lifecycle.backup import restore as restore
