import type { ArgumentMetadata, Type } from '@nestjs/common';
import {
  IsDefined,
  IsIn,
  IsNotIn,
  IsOptional,
  IsString,
  Matches,
  MaxLength,
  NotEquals,
  Validate,
  ValidateIf,
  ValidateNested,
  validateSync,
  type ValidationArguments,
  type ValidatorConstraintInterface,
} from 'class-validator';
import fc from 'fast-check';
import { NewPlantDto } from '../plants/new-plant.dto.js';
import { DtoValidationPipe } from './dto-validation.pipe.js';
import { IsInt64, MayBeLeftOut } from './dto-rules.js';

class IsSameAsName implements ValidatorConstraintInterface {
  validate(value: unknown, args?: ValidationArguments): boolean {
    return value === (args?.object as { name?: unknown } | undefined)?.name;
  }
}

class Inner {
  @IsInt64()
  id!: bigint;
}

/** Rules of every sort that class-validator has, so that the pipe is right for the DTOs of a later day too. */
class Many {
  @IsNotIn(['a', null])
  @NotEquals(true)
  id!: unknown;

  @IsOptional()
  @IsIn(['', 'a', 'b'])
  @MaxLength(1)
  name?: unknown;

  @Validate(IsSameAsName)
  tag!: unknown;
}

class Conditional {
  @IsDefined()
  id!: unknown;

  @ValidateIf((dto: Conditional) => dto.id !== null)
  @MayBeLeftOut()
  @Matches(/^a/)
  name?: unknown;
}

class Nested {
  @ValidateNested()
  id!: Inner;
}

class Listed {
  @IsString({ each: true })
  id!: string[];
}

class Grouped {
  @IsInt64()
  id!: unknown;

  @IsString({ groups: ['other'] })
  name!: unknown;

  @IsString({ always: true })
  tag!: unknown;
}

const pipe = new DtoValidationPipe();

async function passes(body: Map<string, unknown>, metatype: Type): Promise<boolean> {
  try {
    await pipe.transform(body, { type: 'body', metatype } as ArgumentMetadata);
    return true;
  } catch {
    return false;
  }
}

const utf16 = fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit));
const value = fc.oneof(
  fc.bigInt(-(2n ** 63n) - 2n, -(2n ** 63n) + 2n),
  fc.bigInt(2n ** 63n - 3n, 2n ** 63n + 1n),
  fc.bigInt(-9n, 9n),
  fc.double(),
  fc.constantFrom<unknown>('', 'a', 'b', 'ab', '\0', '\ud800', null, true, false, [], ['a'], {}, ['a', 1n]),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: utf16 }),
);
const body = fc.record({ id: value, name: value, tag: value, other: value }, { requiredKeys: [] });

test.each([NewPlantDto, Many, Conditional, Nested, Listed, Grouped].map((dto) => [dto.name, dto] as const))(
  'The short way and class-validator judge alike: %s',
  async (_, metatype) => {
    const property = fc.asyncProperty(body, async (members) => {
      const declared = Object.entries(members).filter(([name]) => name !== 'other');
      const dto = Object.assign(new metatype(), Object.fromEntries(declared)) as object;
      // As Nest's own pipe asks it.
      const isGood = validateSync(dto, { forbidUnknownValues: false }).length === 0;
      expect(await passes(new Map(Object.entries(members)), metatype)).toBe(isGood);
    });
    await fc.assert(property, { numRuns: 2_000 });
  },
);
