import {
  createLocalJWKSet,
  errors,
  type CryptoKey,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWSHeaderParameters,
} from 'jose';
import { Failure } from '../errors/failure.js';

/** Keys are fetched again after this time, so that a withdrawn one is noticed. */
const MAX_AGE_MS = 10 * 60_000;
const TIMEOUT_MS = 2_000;
/** The pause after a failed fetch, so that callers do not wait for a dead issuer one after the other. */
const RETRY_MS = 3_000;
/** Anybody can make tokens that name an unknown key. They cause at most this many fetches, then one a second. */
const FETCH_BURST = 30;
const FETCH_INTERVAL_MS = 1_000;

/**
 * The keys that a token issuer publishes (RFC 7517). They are fetched if they are old or a token names an unknown one.
 * All durations use the monotonic clock: a wall clock that is set back would keep old keys alive.
 */
export class IssuerKeys {
  #known: { find: ReturnType<typeof createLocalJWKSet>; fetch: number; staleAt: number } | undefined;
  /** How many fetches have begun. It numbers the fetches. */
  #begun = 0;
  #fetching: Promise<void> | undefined;
  #failure: { error: unknown; retryAt: number } | undefined;
  #fetchesLeft = FETCH_BURST;
  #countedAt = performance.now();

  /** @param onFailure called once for each failed fetch. */
  constructor(
    private readonly url: string,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /**
   * @returns the key that the token's header names.
   * @throws {errors.JOSEError} if a fetch that began after the token arrived has no such key, or more than one.
   * @throws {Failure} 503 if no such fetch succeeded, so that nothing is known about the token.
   */
  readonly keyFor = async (header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> => {
    const begun = this.#begun;
    const isOld = this.#known === undefined || performance.now() >= this.#known.staleAt;
    if (isOld) await this.#refresh();
    const key = await this.#find(header, token);
    if (key !== undefined) return key;
    const wasAsked = await this.#askAfter(begun);
    const published = await this.#find(header, token);
    if (published !== undefined) return published;
    if (wasAsked) throw new errors.JWKSNoMatchingKey();
    throw this.#failure === undefined
      ? new Failure(503, 'The key of the token is not known yet')
      : new Failure(503, 'The keys of the token issuer cannot be fetched', { cause: this.#failure.error });
  };

  /** @returns undefined if no such key is known. */
  async #find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey | undefined> {
    try {
      return await this.#known?.find(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return undefined;
      throw error;
    }
  }

  /** @returns whether the known keys are from a later fetch than this one, which may have missed a new key. */
  async #askAfter(fetch: number): Promise<boolean> {
    const wasAsked = () => this.#known !== undefined && this.#known.fetch > fetch;
    if (this.#begun === fetch) await this.#fetching;
    // All that waited for that one share the next.
    if (!wasAsked()) await this.#refresh();
    return wasAsked();
  }

  /** Waits for the fetch that is under way, or for a new one if one may begin. */
  async #refresh(): Promise<void> {
    if (this.#fetching === undefined && this.#mayFetch())
      this.#fetching = this.#fetch(++this.#begun).finally(() => (this.#fetching = undefined));
    await this.#fetching;
  }

  #mayFetch(): boolean {
    const now = performance.now();
    if (this.#failure !== undefined && now < this.#failure.retryAt) return false;
    const earned = (now - this.#countedAt) / FETCH_INTERVAL_MS;
    this.#fetchesLeft = Math.min(FETCH_BURST, this.#fetchesLeft + earned);
    this.#countedAt = now;
    if (this.#fetchesLeft < 1) return false;
    this.#fetchesLeft--;
    return true;
  }

  async #fetch(fetchNumber: number): Promise<void> {
    const staleAt = performance.now() + MAX_AGE_MS;
    try {
      const response = await fetch(this.url, {
        headers: { Accept: 'application/jwk-set+json, application/json' },
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const body = await response.text();
      if (response.status !== 200) throw new Error(`The token issuer answered ${response.status}`);
      this.#known = { find: createLocalJWKSet(parseKeySet(body)), fetch: fetchNumber, staleAt };
      this.#failure = undefined;
    } catch (error) {
      this.#failure = { error, retryAt: performance.now() + RETRY_MS };
      this.onFailure(error);
    }
  }
}

/** The error is logged, so it does not repeat what the issuer answered. */
function parseKeySet(text: string): JSONWebKeySet {
  try {
    return JSON.parse(text) as JSONWebKeySet;
  } catch {
    throw new Error('The token issuer did not answer with JSON');
  }
}
