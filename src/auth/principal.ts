/** Who a token stands for. */
export interface Principal {
  /** The JWT's `sub`; an opaque token has none. */
  subject?: string | undefined;
  /** When the token ends, in milliseconds since 1970, tolerance included; an opaque token does not. */
  expiresAt?: number | undefined;
}

declare global {
  // The place where passport puts the caller. Its types declare the namespace with an empty User, to be merged with one's
  // own; there is no other way to say what a User is.
  // eslint-disable-next-line @typescript-eslint/no-namespace
  namespace Express {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type
    interface User extends Principal {}
  }
}
