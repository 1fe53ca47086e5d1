import { Inject, Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import type { JwtVerifier } from './jwt-verifier.js';
import { OpaqueTokens } from './opaque-tokens.js';
import type { Logger } from 'pino';
import { LOGGER } from '../logging/logging.js';
import type { Principal } from './principal.js';

export const REALM = 'plant-store';

/**
 * Checks every token. passport-http-bearer would also take a token from the query or the body, but neither exists when
 * it runs: the query is never parsed, and the body is read after the guard.
 */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  readonly #opaque: OpaqueTokens;
  readonly #jwt: Promise<JwtVerifier> | undefined;

  constructor(@Inject(CONFIG) config: Config, @Inject(LOGGER) logger: Logger) {
    super({ realm: REALM });
    this.#opaque = new OpaqueTokens(config.auth.tokenDigests);
    this.#jwt =
      config.auth.jwt &&
      loadVerifier(config.auth.jwt, (err) =>
        logger.error({ err }, 'The keys of the token issuer could not be fetched'),
      );
  }

  async validate(token: string): Promise<Principal | false> {
    if (this.#opaque.accept(token)) return {};
    const jwt = await this.#jwt;
    return (await jwt?.verify(token)) ?? false;
  }
}

/** Loads the code that checks JWTs only if it is used: it takes 3 % of the start. */
async function loadVerifier(...args: ConstructorParameters<typeof JwtVerifier>): Promise<JwtVerifier> {
  const verifier = await import('./jwt-verifier.js');
  return new verifier.JwtVerifier(...args);
}
