import { Controller, HttpCode, Post } from '@nestjs/common';
import { ApiBody, ApiOperation, ApiResponse } from '@nestjs/swagger';
import { ErrorDto } from '../errors/error.dto.js';
import { Answer } from '../http/answer.js';
import { JsonBody } from '../json-body/json-body.js';
import type { operations } from '../openapi/contract.generated.js';
import { NewPlantDto } from './new-plant.dto.js';
import { PlantDto } from './plant.dto.js';
import { PlantsService } from './plants.service.js';

/** The contract's response to a create. */
type Created = operations['createPlant']['responses'][200];

@Controller('plants')
export class PlantsController {
  constructor(private readonly plants: PlantsService) {}

  @Post()
  @HttpCode(200)
  @ApiOperation({
    operationId: 'createPlant',
    summary: 'Create plant',
    description: 'Creates a new plant in the store',
  })
  @ApiBody({ type: NewPlantDto })
  @ApiResponse({
    status: 200,
    type: PlantDto,
    description: 'Plant response',
    headers: {
      'Plant-Id': {
        description: 'The id as it is stored, in decimal digits',
        required: true,
        schema: { type: 'string', pattern: '^(0|-?[1-9][0-9]{0,18})$' },
      },
    },
  })
  @ApiResponse({ status: 400, type: ErrorDto, description: 'Unexpected error' })
  @ApiResponse({
    status: 401,
    type: ErrorDto,
    description: 'The bearer token is missing or refused',
    headers: {
      'WWW-Authenticate': {
        description: 'The challenge of RFC 6750, with an error code where a token was refused',
        schema: { type: 'string' },
      },
    },
  })
  @ApiResponse({
    status: 503,
    type: ErrorDto,
    description: 'The store cannot be reached or is overloaded; the same request may be sent again',
    headers: {
      'Retry-After': {
        description: 'Seconds to wait before the next try',
        schema: { type: 'integer', format: 'int32', minimum: 1 },
      },
    },
  })
  async createPlant(
    @JsonBody() newPlant: NewPlantDto,
  ): Promise<Answer<Created['content']['application/json'], Created['headers']>> {
    const plant = await this.plants.createPlant(newPlant);
    return new Answer(plant, { 'Plant-Id': newPlant.id.toString() });
  }
}
