import { createHash } from 'node:crypto';

/** @returns the SHA-256 digest of a bearer token, 32 bytes: the only form in which the service keeps one. */
export function digestOfToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
