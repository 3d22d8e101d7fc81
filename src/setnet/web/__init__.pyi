from .asgi_app import create_app as create_app
from .server.serve import serve as serve
from .settings import WebSettings as WebSettings
