/**
 * What a handler returns if its response has headers of its own.
 *
 * The adapter writes them together with all others. With `response.setHeader()`, which puts them into Node's table
 * first, a create takes 6 % more CPU.
 */
export class Answer<Body extends object, Headers extends Readonly<Record<string, unknown>>> {
  /** @param headers field values by field name, as they are sent. */
  constructor(
    readonly body: Body,
    readonly headers: Headers,
  ) {}
}
