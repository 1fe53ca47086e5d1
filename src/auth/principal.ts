/** Who a token stands for. */
export interface Principal {
  /** The JWT's `sub`; an opaque token has none. */
  subject?: string | undefined;
  /** When the token ends, in milliseconds since 1970, tolerance included; an opaque token does not. */
  expiresAt?: number | undefined;
}

declare global {
  // The place where passport puts the caller.
  // eslint-disable-next-line @typescript-eslint/no-namespace
  namespace Express {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type
    interface User extends Principal {}
  }
}
