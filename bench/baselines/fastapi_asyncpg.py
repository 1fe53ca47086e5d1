"""FastAPI and asyncpg, one INSERT per request. asyncpg prepares the statement by itself."""

import os
from typing import Optional

import asyncpg
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

app = FastAPI()
bearer = HTTPBearer()


class NewPlant(BaseModel):
    id: int
    name: str
    tag: Optional[str] = None


class Plant(BaseModel):
    name: str
    tag: Optional[str] = None


@app.on_event("startup")
async def connect() -> None:
    app.state.pool = await asyncpg.create_pool(os.environ["DATABASE_URL"])


async def check_token(credentials: HTTPAuthorizationCredentials = Depends(bearer)) -> None:
    if credentials.credentials != os.environ["ACCESS_TOKEN"]:
        raise HTTPException(status_code=401)


@app.post("/plants", response_model=Plant, response_model_exclude_none=True, dependencies=[Depends(check_token)])
async def create_plant(plant: NewPlant) -> NewPlant:
    await app.state.pool.execute(
        "INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3)", plant.id, plant.name, plant.tag
    )
    return plant
