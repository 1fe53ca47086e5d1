import { Injectable, type ArgumentMetadata, type PipeTransform } from '@nestjs/common';
import { Failure } from '../errors/failure.js';
import { INT64_RULE, isInt64 } from '../json-body/dto-rules.js';

/** One spelling for each integer, so that each resource has one path. */
const INTEGER = /^(?:0|-?[1-9]\d{0,18})$/;

/** Reads a path parameter of `format: int64` exactly: `@Param('id', Int64ParameterPipe) id: bigint`. */
@Injectable()
export class Int64ParameterPipe implements PipeTransform<string, bigint> {
  /** @throws {Failure} 422 naming the parameter, if the value is not an int64 in that spelling. */
  transform(value: string, { data: name }: ArgumentMetadata): bigint {
    const integer = INTEGER.test(value) ? BigInt(value) : undefined;
    if (!isInt64(integer)) throw new Failure(422, `${name} must be ${INT64_RULE}`);
    return integer;
  }
}
