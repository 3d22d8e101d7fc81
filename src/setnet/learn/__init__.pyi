from .export.calibration import Calibration as Calibration
from .export.calibration import calibrate_elements as calibrate_elements
from .export.calibration import fit_logistic as fit_logistic
from .models.network import SetNetwork as SetNetwork
from .models.network import make_aggregator as make_aggregator
from .training.settings import Settings as Settings
from .training.settings import load_settings as load_settings
from .training.settings import presets as presets
