from .losses import in_batch_loss as in_batch_loss
from .losses import slice_loss as slice_loss
from .run import TrainingProgress as TrainingProgress
from .run import TrainingReport as TrainingReport
from .sampling import Triple as Triple
from .sampling import read_triples as read_triples
from .start import train as train
