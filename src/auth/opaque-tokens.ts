import { timingSafeEqual } from 'node:crypto';
import { digestOfToken } from '../config/token-digest.js';

/** The accepted opaque tokens. Only their SHA-256 digests are kept. */
export class OpaqueTokens {
  constructor(private readonly digests: readonly Buffer[]) {}

  /** Compares with every digest in constant time, so that the time reveals nothing about the tokens. */
  accept(token: string): boolean {
    const digest = digestOfToken(token);
    let accepted = false;
    for (const known of this.digests) accepted = timingSafeEqual(known, digest) || accepted;
    return accepted;
  }
}
