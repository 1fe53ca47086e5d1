import { createHash, timingSafeEqual } from 'node:crypto';

/** The accepted opaque tokens, of which only the SHA-256 digests are kept. */
export class OpaqueTokens {
  constructor(private readonly digests: readonly Buffer[]) {}

  /** Compares with every digest and in constant time, so that the time taken tells nothing of the tokens. */
  accept(token: string): boolean {
    const digest = createHash('sha256').update(token).digest();
    let accepted = false;
    for (const known of this.digests) accepted = timingSafeEqual(known, digest) || accepted;
    return accepted;
  }
}
