import { Injectable } from '@nestjs/common';
import { StoreUnavailable } from '../database/errors.js';
import { Failure } from '../errors/failure.js';
import type { NewPlantDto } from './new-plant.dto.js';
import { DIFFERENCES, toStored } from './plant.columns.js';
import type { PlantDto } from './plant.dto.js';
import { PlantsMetrics } from './plants.metrics.js';
import { PlantsRepository } from './plants.repository.js';

/** Creates plants. The id is the idempotency key, so a client may send the same create again at any time. */
@Injectable()
export class PlantsService {
  constructor(
    private readonly plants: PlantsRepository,
    private readonly metrics: PlantsMetrics,
  ) {}

  /**
   * @returns the plant, once it is durably stored: now, or by the same create earlier.
   * @throws {Failure} 409 if another plant has the id. That plant stays unchanged.
   * @throws {ValuesRefused} if the database refuses the plant.
   * @throws {StoreUnavailable} if the store cannot be reached or is overloaded. The same create may be sent again.
   */
  async createPlant(newPlant: NewPlantDto): Promise<PlantDto> {
    try {
      const outcome = await this.plants.createOnce(toStored(newPlant));
      if (outcome === 'conflict')
        throw new Failure(409, `id is taken by another plant, with another ${DIFFERENCES}`);
      this.metrics.countCreate(outcome);
      const { name, tag } = newPlant;
      return tag === undefined ? { name } : { name, tag };
    } catch (error) {
      this.metrics.countCreate(error instanceof StoreUnavailable ? 'unavailable' : 'refused');
      throw error;
    }
  }
}
