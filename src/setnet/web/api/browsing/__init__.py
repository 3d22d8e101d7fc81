"""What the page is walked through by: photos by date, folders of the machine, chosen photos as one file."""

from fastapi import APIRouter

from setnet.web.api.browsing import archive, folders, timeline

routes = APIRouter()
for part in (timeline, folders, archive):
    routes.include_router(part.routes)
