import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import type { components } from '../openapi/contract.generated.js';

/** The plant in a response: the contract's Plant. */
@ApiSchema({ name: 'Plant' })
export class PlantDto implements Plant {
  @ApiProperty({ description: 'The name of the plant' })
  name!: string;

  @ApiPropertyOptional({ description: 'Tag that specifies the type of the plant' })
  tag?: string;
}

type Plant = components['schemas']['Plant'];
