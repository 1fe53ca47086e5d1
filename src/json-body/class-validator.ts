import { createRequire } from 'node:module';
import type * as classValidator from 'class-validator';

type Part<Name extends keyof typeof classValidator> = Pick<typeof classValidator, Name>;

const require = createRequire(import.meta.url);
const load = (path: string): unknown => require(`class-validator/cjs/${path}.js`);

// Only the parts of class-validator that the service uses. Its index would load all rules and the world's telephone
// numbers: 13 % of the start and 12 MiB.
export const { ValidateBy } = load('decorator/common/ValidateBy') as Part<'ValidateBy'>;
export const { ValidateIf } = load('decorator/common/ValidateIf') as Part<'ValidateIf'>;
export const { getMetadataStorage } = load('metadata/MetadataStorage') as Part<'getMetadataStorage'>;
export const { ValidationTypes } = load('validation/ValidationTypes') as Part<'ValidationTypes'>;
export const { Validator } = load('validation/Validator') as Part<'Validator'>;
