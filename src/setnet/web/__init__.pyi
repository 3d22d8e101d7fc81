from .annotation import serve_annotation as serve_annotation
from .app import create_app as create_app
from .server import serve as serve
from .settings import WebSettings as WebSettings
