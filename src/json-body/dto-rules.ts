import { ValidateBy, ValidateIf } from './class-validator.js';

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
export const INT64_RULE = `an integer from ${INT64_MIN} to ${INT64_MAX}`;

export function isInt64(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= INT64_MIN && value <= INT64_MAX;
}

export const IS_STORABLE_TEXT = 'isStorableText';

/** Names the type of a JSON value, as the exact parser reads it, for a message. No message repeats the value itself. */
export function nameOfType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  switch (typeof value) {
    case 'object':
      return 'an object';
    case 'string':
      return 'a string';
    case 'boolean':
      return 'a boolean';
    default:
      return 'a number';
  }
}

/** OpenAPI `format: int64`: a signed 64-bit integer, which the exact parser reads as a bigint. */
export const IsInt64 = () =>
  ValidateBy({
    name: 'isInt64',
    validator: {
      validate: isInt64,
      defaultMessage: (rule) => {
        const value: unknown = rule?.value;
        const came =
          typeof value === 'bigint' || typeof value === 'number' ? 'another number' : nameOfType(value);
        return `${rule?.property} must be ${INT64_RULE}, not ${came}`;
      },
    },
  });

/** A JSON string. Unlike class-validator's own rule, this one names the type that was sent instead. */
export const IsJsonString = () =>
  ValidateBy({
    name: 'isJsonString',
    validator: {
      validate: (value: unknown) => typeof value === 'string',
      defaultMessage: (rule) => `${rule?.property} must be a string, not ${nameOfType(rule?.value)}`,
    },
  });

/** Text that PostgreSQL can store: no U+0000, and no lone surrogate, which UTF-8 cannot encode. Accepts other types. */
export const IsStorableText = () =>
  ValidateBy({
    name: IS_STORABLE_TEXT,
    validator: {
      validate: (value: unknown) =>
        typeof value !== 'string' || (!value.includes('\0') && value.isWellFormed()),
      defaultMessage: (rule) =>
        (rule?.value as string).includes('\0')
          ? `${rule?.property} must not have the character U+0000`
          : `${rule?.property} must be Unicode text without lone surrogates`,
    },
  });

/** The member may be left out. Unlike class-validator's IsOptional, this rule does not accept `null`. */
export const IsOmittable = () => ValidateIf((_, value) => value !== undefined);
