import {
  ConflictException,
  Inject,
  Injectable,
  ServiceUnavailableException,
  UnprocessableEntityException,
} from '@nestjs/common';
import { StoreUnavailableError, ValuesRefusedError } from '../database/errors.js';
import { METRICS, type Metrics } from '../operations/metrics.js';
import type { NewPlantDto } from './new-plant.dto.js';
import type { PlantDto } from './plant.dto.js';
import { PlantsRepository } from './plants.repository.js';

/** What creating a plant means: the id is the idempotency key, so the same create may be sent again at any time. */
@Injectable()
export class PlantsService {
  constructor(
    private readonly plants: PlantsRepository,
    @Inject(METRICS) private readonly metrics: Metrics,
  ) {}

  /**
   * @returns the plant, once it is durably stored: now, or by the same create earlier.
   * @throws {ConflictException} where another plant has the id; it is left as it is.
   * @throws {UnprocessableEntityException} where the database refuses the plant.
   * @throws {ServiceUnavailableException} where the store cannot be reached or is overloaded; the same create may be
   *   sent again.
   */
  async createPlant({ id, name, tag }: NewPlantDto): Promise<PlantDto> {
    try {
      const result = await this.plants.createOnce({ id, name, tag: tag ?? null });
      if (result === 'conflict')
        throw new ConflictException('id is taken by another plant, with another name or tag');
      this.metrics.countCreate(result);
      return tag === undefined ? { name } : { name, tag };
    } catch (error) {
      if (error instanceof StoreUnavailableError) {
        this.metrics.countCreate('unavailable');
        throw new ServiceUnavailableException(`${error.message}; the same request may be sent again`, {
          cause: error.cause,
        });
      }
      this.metrics.countCreate('refused');
      if (error instanceof ValuesRefusedError) {
        throw new UnprocessableEntityException('The store cannot hold this plant', { cause: error.cause });
      }
      throw error;
    }
  }
}
