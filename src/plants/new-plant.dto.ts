import { ApiProperty, ApiPropertyOptional, ApiSchema } from '@nestjs/swagger';
import { IsInt64, IsJsonString, IsStorableText, IsOmittable } from '../json-body/dto-rules.js';
import type { components } from '../openapi/contract.generated.js';

/** What a client sends to create a plant: the contract's NewPlant. */
@ApiSchema({ name: 'NewPlant' })
export class NewPlantDto implements NewPlant {
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Identification number of the plant' })
  @IsInt64()
  id!: bigint;

  @ApiProperty({ description: 'The name of the plant' })
  @IsJsonString()
  @IsStorableText()
  name!: string;

  @ApiPropertyOptional({ description: 'Tag that specifies the type of the plant' })
  @IsOmittable()
  @IsJsonString()
  @IsStorableText()
  tag?: string;
}

type NewPlant = components['schemas']['NewPlant'];
