from .labels import read_labels as read_labels
from .record import Label as Label
from .record import TaughtPhrase as TaughtPhrase
from .record import read_taught as read_taught
from .session import Session as Session
