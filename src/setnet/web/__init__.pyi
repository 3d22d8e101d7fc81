from .annotation import serve_annotation as serve_annotation
from .asgi_app import create_app as create_app
from .server.serve import serve as serve
from .server_settings import WebSettings as WebSettings
