import { Controller, Get, Module, Param, type DynamicModule } from '@nestjs/common';
import { ApiOperation, ApiParam, ApiResponse } from '@nestjs/swagger';
import type { Logger } from 'pino';
import { AppModule } from '../../src/app.module.js';
import type { Config } from '../../src/config/config.js';
import { Database } from '../../src/database/database.js';
import { ErrorDto } from '../../src/errors/error.dto.js';
import { Failure } from '../../src/errors/failure.js';
import { Int64ParameterPipe } from '../../src/http/int64-parameter.pipe.js';
import type { Example } from '../../src/openapi/examples.js';
import { PlantDto } from '../../src/plants/plant.dto.js';

const TIMEOUT_MS = 4_000;

@Controller('second')
class ReadPlantController {
  constructor(private readonly database: Database) {}

  @Get(':id')
  @ApiOperation({ operationId: 'readPlant' })
  @ApiParam({ name: 'id', schema: { type: 'integer', format: 'int64' } })
  @ApiResponse({ status: 200, type: PlantDto })
  @ApiResponse({ status: 400, type: ErrorDto })
  @ApiResponse({ status: 401, type: ErrorDto })
  @ApiResponse({ status: 404, type: ErrorDto })
  @ApiResponse({ status: 503, type: ErrorDto })
  async readPlant(@Param('id', Int64ParameterPipe) id: bigint): Promise<PlantDto> {
    const [plant] = await this.database.query<PlantDto>(
      { text: 'SELECT name FROM plants WHERE id = $1', values: [id.toString()] },
      performance.now() + TIMEOUT_MS,
    );
    if (plant === undefined) throw new Failure(404, 'No plant has this id');
    return plant;
  }
}

/** Its example, after that of createPlant. */
export const SECOND_EXAMPLES: Record<string, Example> = {
  readPlant: { parameters: { id: 1 }, responses: { 200: { name: 'Monstera' } } },
};

@Module({ controllers: [ReadPlantController] })
class WithSecondOperation {}

/** The service with a second operation, `GET /second/{id}`, as a developer would add it. */
export function withSecondOperation(config: Config, logger: Logger): DynamicModule {
  return {
    module: WithSecondOperation,
    imports: [AppModule.forRoot(config, logger)],
  };
}
