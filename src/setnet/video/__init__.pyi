from .decode.boxes import is_live_video as is_live_video
from .decode.boxes import taken_at as taken_at
from .decode.pictures import frames_at as frames_at
from .people.shot_person import ShotPerson as ShotPerson
from .shot import Shot as Shot
from .shot import Watched as Watched
from .watching import watch as watch
