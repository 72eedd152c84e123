from .labelled import Triple as Triple
from .labelled import read_triples as read_triples
from .losses import in_batch_loss as in_batch_loss
from .losses import slice_loss as slice_loss
from .run import TrainingProgress as TrainingProgress
from .run import TrainingReport as TrainingReport
from .start import train as train
