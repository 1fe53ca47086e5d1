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
import { type ExactObject, parseExactJson } from './exact-json.js';
import { IsInt64, IsOmittable } from './dto-rules.js';

class IsSameAsName implements ValidatorConstraintInterface {
  validate(value: unknown, args?: ValidationArguments): boolean {
    return value === (args?.object as { name?: unknown } | undefined)?.name;
  }
}

class Inner {
  @IsInt64()
  id!: bigint;
}

/** Rules of every kind in class-validator, because later DTOs may use them. */
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
  @IsOmittable()
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

async function passes(body: ExactObject, metatype: Type): Promise<boolean> {
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
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom<unknown>('', 'a', 'b', 'ab', '\0', '\ud800', null, true, false, [], ['a'], {}),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: utf16 }),
);
const body = fc
  .record({ id: value, name: value, tag: value, other: value }, { requiredKeys: [] })
  .map((members) => {
    const write = (value: unknown) => (typeof value === 'bigint' ? value.toString() : JSON.stringify(value));
    return `{${Object.entries(members)
      .map(([name, value]) => `"${name}":${write(value)}`)
      .join(',')}}`;
  });

test.each([NewPlantDto, Many, Conditional, Grouped].map((dto) => [dto.name, dto] as const))(
  'The fast path agrees with class-validator: %s',
  async (_, metatype) => {
    const property = fc.asyncProperty(body, async (text) => {
      const read = parseExactJson(text) as ExactObject;
      const dto = new metatype();
      for (const member of ['id', 'name', 'tag'] as const) {
        if (read.get(member) !== undefined) Object.assign(dto, { [member]: read.get(member) });
      }
      // NestJS's own pipe calls it like this.
      const isGood = validateSync(dto, { forbidUnknownValues: false }).length === 0;
      expect(await passes(read, metatype)).toBe(isGood);
    });
    await fc.assert(property, { numRuns: 2_000 });
  },
);

test.each([Nested, Listed].map((dto) => [dto.name, dto] as const))(
  'A rule for the content of an array or object is an error: %s',
  async (_, metatype) => {
    const outcome = pipe.transform(parseExactJson('{"id":[]}'), { type: 'body', metatype });
    await expect(outcome).rejects.toThrow(
      'A rule validates the content of an array or object, which is never read',
    );
  },
);
