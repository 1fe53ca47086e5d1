import { randomBytes } from 'node:crypto';
import type { Config } from '../config/config.js';
import { digestOfToken } from '../config/token-digest.js';

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
