import { Injectable, ValidationPipe, type ArgumentMetadata, type Type } from '@nestjs/common';
import {
  getMetadataStorage,
  ValidationTypes,
  type MetadataStorage,
  type ValidationError,
} from 'class-validator';
import { Failure } from '../errors/failure.js';
import { ExactObject } from './exact-json.js';
import { IS_STORABLE_TEXT, nameOfType } from './dto-rules.js';

/** A DTO class whose rules stand ready: the members it declares and a check of each that builds nothing for a good value. */
interface CompiledDto {
  members: string[];
  accepts: (dto: Record<string, unknown>) => boolean;
}

const compiledDtos = new Map<unknown, CompiledDto>();

/** The members that a DTO class declares, as class-validator's metadata has them. */
export function memberNames(metatype: unknown): string[] {
  return compile(metatype).members;
}

/**
 * Nest's ValidationPipe with a short way for good bodies: they pass by the same class-validator constraints, called
 * directly; only a body that one of them refuses goes through class-validator itself, which words the message.
 * Members that the DTO does not declare are ignored.
 *
 * @throws {Failure} 422 naming every member that is missing, of a wrong type or out of range; 400 if the only fault is
 *   text that cannot be stored.
 */
@Injectable()
export class DtoValidationPipe extends ValidationPipe {
  constructor() {
    super({ transform: true, validateCustomDecorators: true, exceptionFactory: describeFaults });
  }

  override async transform(body: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    if (!(body instanceof ExactObject)) {
      throw new Failure(422, `The body must be a JSON object, not ${nameOfType(body)}`);
    }
    const { members, accepts } = compile(metadata.metatype);
    const dto = new (metadata.metatype as Type<Record<string, unknown>>)();
    for (const member of members) {
      const value = body.get(member);
      if (value !== undefined) dto[member] = value;
    }
    return accepts(dto) ? dto : super.transform(dto, metadata);
  }
}

function compile(metatype: unknown): CompiledDto {
  const known = compiledDtos.get(metatype);
  if (known !== undefined) return known;

  const storage = getMetadataStorage();
  const rules = storage.getTargetValidationMetadatas(metatype as Type, '', false, false);
  if (rules.some(looksInside))
    throw new Error('A rule looks into a list or an object, of which nothing is read');
  const members = [...new Set(rules.map((rule) => rule.propertyName))];
  const checks = members.map((member) => {
    const own = rules.filter((rule) => rule.propertyName === member);
    // What ValidateIf and IsOptional leave behind: the other rules count only where each condition holds.
    const conditions = own.filter(isCondition).map((rule) => rule.constraints[0] as Condition);
    const constraints = own
      .filter((rule) => !isCondition(rule))
      .flatMap(({ constraintCls, constraints }) =>
        storage
          .getTargetValidatorConstraints(constraintCls)
          .map(({ instance }) => ({ instance, constraints })),
      );
    return { member, conditions, constraints };
  });
  const targetName = (metatype as Type).name;
  const accepts = (dto: Record<string, unknown>) =>
    checks.every(({ member, conditions, constraints }) => {
      const value = dto[member];
      return (
        !conditions.every((condition) => condition(dto, value)) ||
        constraints.every(
          ({ instance, constraints }) =>
            // Written out, since V8 makes a new hidden class for each object that is spread with a member more.
            instance.validate(value, { value, object: dto, property: member, targetName, constraints }) ===
            true,
        )
      );
    });
  const compiled = { members, accepts };
  compiledDtos.set(metatype, compiled);
  return compiled;
}

type Rule = ReturnType<MetadataStorage['getTargetValidationMetadatas']>[number];
type Condition = (dto: object, value: unknown) => boolean;

function isCondition(rule: Rule): boolean {
  return rule.type === ValidationTypes.CONDITIONAL_VALIDATION;
}

function looksInside(rule: Rule): boolean {
  return rule.each || rule.type === ValidationTypes.NESTED_VALIDATION;
}

function describeFaults(errors: ValidationError[]): Failure {
  const faults = errors.flatMap(({ property, value, constraints }) =>
    value === undefined ? [`${property} is required`] : Object.values(constraints ?? {}),
  );
  const onlyText = errors.every(({ constraints }) =>
    Object.keys(constraints ?? {}).every((rule) => rule === IS_STORABLE_TEXT),
  );
  return new Failure(onlyText ? 400 : 422, faults.join('; '));
}
