"""What an index and its cluster are, what is wrong with them, and what to do about it."""

from slice_os.diagnosis.examining import doctor as doctor
from slice_os.diagnosis.findings import Diagnosis as Diagnosis
from slice_os.diagnosis.findings import Finding as Finding
from slice_os.diagnosis.findings import Severity as Severity
from slice_os.diagnosis.verifying import verify as verify
