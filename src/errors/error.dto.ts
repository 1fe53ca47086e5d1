import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { components } from '../openapi/contract.generated.js';

/** The body of every failure: the contract's Error. */
@ApiSchema({ name: 'Error' })
export class ErrorDto implements ContractError {
  @ApiProperty({ type: 'integer', format: 'int32', description: 'Numeric error value' })
  error!: number;

  @ApiProperty({ description: 'Text describing the error' })
  message!: string;
}

type ContractError = components['schemas']['Error'];
