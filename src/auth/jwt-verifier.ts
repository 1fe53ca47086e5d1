import { errors, jwtVerify, type JWTPayload } from 'jose';
import type { Config } from '../config/config.js';
import { IssuerKeys } from './issuer-keys.js';
import type { Principal } from './principal.js';

/** RFC 8725 section 3.1: only these. All are asymmetric: with a shared secret every service could issue tokens. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/**
 * RFC 8725 section 3.11: the types of an access token (RFC 9068 section 2.1) and of a JWT without a type of its own, to
 * exclude tokens that the issuer made for another purpose, such as logout tokens. The type may also be absent.
 */
const ACCESS_TOKEN_TYPES = ['at+jwt', 'application/at+jwt', 'jwt'];
/** How far the clocks of issuer and service may differ. */
const CLOCK_TOLERANCE_SECONDS = 30;

/** Checks signed JWTs (RFC 7519) against the keys that the issuer publishes. */
export class JwtVerifier {
  readonly #keys: IssuerKeys;

  /** @param onFailure called once for each failed fetch of the keys. */
  constructor(
    private readonly config: NonNullable<Config['auth']['jwt']>,
    onFailure: (error: unknown) => void,
  ) {
    this.#keys = new IssuerKeys(config.jwksUrl, onFailure);
  }

  /**
   * @returns the caller, or `undefined` if the token is refused: not a JWT, another algorithm or type, an unknown key,
   *   a wrong signature, issuer or audience, a missing scope, no expiry, expired, or not valid yet.
   * @throws {Failure} 503 if the keys are unavailable.
   */
  async verify(token: string): Promise<Principal | undefined> {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, this.#keys.keyFor, {
        algorithms: ALGORITHMS,
        issuer: this.config.issuer,
        audience: this.config.audience,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['exp'],
      });
      if (!isAccessToken(protectedHeader.typ) || !this.#hasScope(payload)) return undefined;
      return { subject: payload.sub, expiresAt: ((payload.exp ?? 0) + CLOCK_TOLERANCE_SECONDS) * 1000 };
    } catch (error) {
      // For an unsuitable key, such as RSA of less than 2048 bits (RFC 7518 section 3.3), jose throws a TypeError, and
      // for a malformed one Web Crypto a DOMException.
      const isRefused = [errors.JOSEError, TypeError, DOMException].some((type) => error instanceof type);
      if (isRefused) return undefined;
      throw error;
    }
  }

  /** RFC 9068 section 2.2.3 and RFC 8693 section 4.2: `scope` is one string, with spaces between the scopes. */
  #hasScope({ scope }: JWTPayload): boolean {
    const granted = typeof scope === 'string' ? scope.split(' ') : [];
    return this.config.scope.every((needed) => granted.includes(needed));
  }
}

/** Media types are case-insensitive (RFC 7515 section 4.1.9). */
function isAccessToken(type: unknown): boolean {
  return type === undefined || (typeof type === 'string' && ACCESS_TOKEN_TYPES.includes(type.toLowerCase()));
}
