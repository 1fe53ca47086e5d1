import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config/config.js';
import { digestOfToken } from '../config/values.js';

/**
 * Compares with every digest in constant time, so that the time reveals nothing about the tokens.
 *
 * @param digests of the accepted tokens.
 */
export function isAccepted(token: string, digests: readonly Buffer[]): boolean {
  const digest = digestOfToken(token);
  let accepted = false;
  for (const known of digests) accepted = timingSafeEqual(known, digest) || accepted;
  return accepted;
}

/**
 * For trying the service without a configured token; production refuses to start without one.
 *
 * @returns a new random token and the configuration that accepts it, or no token if one is configured.
 */
export function withOneTimeToken(config: Config): { config: Config; token?: string } {
  if (config.auth.tokenDigests.length > 0 || config.auth.jwt !== undefined) return { config };
  const token = randomBytes(24).toString('base64url');
  return { token, config: { ...config, auth: { ...config.auth, tokenDigests: [digestOfToken(token)] } } };
}
