import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  jwtVerify,
  type JWTVerifyGetKey,
} from 'jose';
import type { Config } from '../config/config.js';
import { Failure } from '../errors/failure.js';
import type { Principal } from './principal.js';

/** RFC 8725 section 3.1: only these, all asymmetric; with a shared secret each service could mint tokens. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/** How far the clocks of issuer and service may be apart. */
const CLOCK_TOLERANCE_SECONDS = 30;
/** Keys are fetched again after this time, so that a withdrawn key is noticed. */
const JWKS_MAX_AGE_MS = 10 * 60_000;
/** A token with an unknown key makes the keys be fetched again, at most this often. */
const JWKS_COOLDOWN_MS = 1_000;
const JWKS_TIMEOUT_MS = 2_000;
/** After a fetch that failed, none is tried for this time: callers don't wait for a dead issuer one after the other. */
const JWKS_RETRY_MS = 3_000;

/** Checks signed JWTs (RFC 7519) against the keys that the issuer publishes (RFC 7517). */
export class JwtVerifier {
  readonly #keyFor: JWTVerifyGetKey;
  #failure: { error: Error; retryAt: number } | undefined;

  /** @param onFailure called once for each fetch of the keys that failed. */
  constructor(
    private readonly config: NonNullable<Config['auth']['jwt']>,
    onFailure: (error: Error) => void,
  ) {
    const remote = createRemoteJWKSet(new URL(config.jwksUrl), {
      cacheMaxAge: JWKS_MAX_AGE_MS,
      cooldownDuration: JWKS_COOLDOWN_MS,
      timeoutDuration: JWKS_TIMEOUT_MS,
      [customFetch]: (url, options) =>
        this.#failure !== undefined && Date.now() < this.#failure.retryAt
          ? Promise.reject(this.#failure.error)
          : fetch(url, options),
    });
    this.#keyFor = async (header, token) => {
      try {
        return await remote(header, token);
      } catch (thrown) {
        if (thrown instanceof errors.JWKSNoMatchingKey || thrown instanceof errors.JWKSMultipleMatchingKeys)
          throw thrown;
        const error = thrown as Error;
        if (error !== this.#failure?.error) {
          this.#failure = { error, retryAt: Date.now() + JWKS_RETRY_MS };
          onFailure(error);
        }
        // A key that is known goes on working.
        const known = remote.jwks();
        const key = known && (await createLocalJWKSet(known)(header, token).catch(() => undefined));
        if (key !== undefined) return key;
        throw new Failure(503, 'The keys of the token issuer cannot be fetched', { cause: error });
      }
    };
  }

  /**
   * @returns who the token stands for, or `undefined` where it is refused: not a JWT, another algorithm, no key of the
   *   issuer's, a wrong signature, issuer or audience, no expiry, expired, or not valid yet.
   * @throws {Failure} 503 if the keys cannot be had, so nothing can be said about the token.
   */
  async verify(token: string): Promise<Principal | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#keyFor, {
        algorithms: ALGORITHMS,
        issuer: this.config.issuer,
        audience: this.config.audience,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['exp'],
      });
      return { subject: payload.sub, expiresAt: ((payload.exp ?? 0) + CLOCK_TOLERANCE_SECONDS) * 1000 };
    } catch (error) {
      // jose throws a TypeError for a key that is unfit, such as RSA of less than 2048 bits (RFC 7518 section 3.3).
      if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined;
      throw error;
    }
  }
}
