/** The caller that a token identifies. */
export interface Principal {
  /** The JWT's `sub`. An opaque token has none. */
  subject?: string | undefined;
  /** When the token expires, in milliseconds since 1970, tolerance included. An opaque token does not. */
  expiresAt?: number | undefined;
}

declare global {
  // Passport's types declare an empty User for this merge; there is no other way to type `request.user`.
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the merge is by namespace
  namespace Express {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type -- only what it extends is added
    interface User extends Principal {}
  }
}
