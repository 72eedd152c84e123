"""Mining: every span of the index that says one of the phrases, exhaustively and exactly."""

from slice_os.mining.mine import mine_phrases as mine_phrases
from slice_os.mining.select import select as select
