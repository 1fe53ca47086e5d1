import { Inject, Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import type { Logger } from 'pino';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { LOGGER } from '../logging/logging.js';
import type { JwtVerifier } from './jwt-verifier.js';
import { isAccepted } from './opaque-tokens.js';
import type { Principal } from './principal.js';

/**
 * Checks every token. passport-http-bearer would also take a token from the query or the body, but neither exists when
 * it runs: the query is never parsed, and the body is read after the guard.
 */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  readonly #tokenDigests: readonly Buffer[];
  readonly #jwt: Promise<JwtVerifier> | undefined;

  constructor(@Inject(CONFIG) { auth }: Config, @Inject(LOGGER) logger: Logger) {
    super();
    this.#tokenDigests = auth.tokenDigests;
    const { jwt } = auth;
    const tell = (err: unknown) => logger.error({ err }, 'The keys of the token issuer could not be fetched');
    // The code that checks JWTs takes 3 % of the start, so it is loaded only if it is used.
    this.#jwt = jwt && import('./jwt-verifier.js').then(({ JwtVerifier }) => new JwtVerifier(jwt, tell));
  }

  async validate(token: string): Promise<Principal | false> {
    if (isAccepted(token, this.#tokenDigests)) return {};
    const jwt = await this.#jwt;
    return (await jwt?.verify(token)) ?? false;
  }
}
