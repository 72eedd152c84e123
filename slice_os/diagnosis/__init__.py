"""What an index and its cluster are, what is wrong with them, and what to do about it."""

from slice_os.diagnosis.examining import doctor
from slice_os.diagnosis.findings import Diagnosis, Finding, Severity

__all__ = ["Diagnosis", "Finding", "Severity", "doctor"]
