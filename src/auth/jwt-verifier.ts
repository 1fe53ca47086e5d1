import { errors, jwtVerify, type JWTPayload } from 'jose';
import type { Config } from '../config/config.js';
import { IssuerKeys } from './issuer-keys.js';
import type { Principal } from './principal.js';

/** RFC 8725 section 3.1: only these, all asymmetric; with a shared secret each service could mint tokens. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/**
 * RFC 8725 section 3.11: the types of an access token (RFC 9068 section 2.1) and of a JWT that names none of its own, so
 * that a token that the same issuer made for another purpose, such as a logout token, is not taken for one.
 */
const TYPES = new Set([undefined, 'at+jwt', 'application/at+jwt', 'jwt']);
/** How far the clocks of issuer and service may be apart. */
const CLOCK_TOLERANCE_SECONDS = 30;

/** Checks signed JWTs (RFC 7519) against the keys that the issuer publishes. */
export class JwtVerifier {
  readonly #keys: IssuerKeys;

  /** @param onFailure called once for each fetch of the keys that failed. */
  constructor(
    private readonly config: NonNullable<Config['auth']['jwt']>,
    onFailure: (error: unknown) => void,
  ) {
    this.#keys = new IssuerKeys(config.jwksUrl, onFailure);
  }

  /**
   * @returns who the token stands for, or `undefined` if it is refused: not a JWT, another algorithm or type, no key of
   *   the issuer's, a wrong signature, issuer or audience, a missing scope, no expiry, expired, or not valid yet.
   * @throws {Failure} 503 if that cannot be told.
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
      if (!TYPES.has(lowerCase(protectedHeader.typ)) || !this.#hasScope(payload)) return undefined;
      return { subject: payload.sub, expiresAt: ((payload.exp ?? 0) + CLOCK_TOLERANCE_SECONDS) * 1000 };
    } catch (error) {
      // jose throws a TypeError for a key that is unfit, such as RSA of less than 2048 bits (RFC 7518 section 3.3).
      if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined;
      throw error;
    }
  }

  /** RFC 9068 section 2.2.3 and RFC 8693 section 4.2: `scope` is one text, with spaces between the scopes. */
  #hasScope({ scope }: JWTPayload): boolean {
    const granted = typeof scope === 'string' ? scope.split(' ') : [];
    return this.config.scope.every((needed) => granted.includes(needed));
  }
}

/** Media types are compared without regard to case (RFC 7515 section 4.1.9). What is no text becomes no type. */
function lowerCase(type: unknown): string | undefined {
  return type === undefined ? undefined : typeof type === 'string' ? type.toLowerCase() : '';
}
