import { createServer, IncomingMessage, ServerResponse, type ServerOptions } from 'node:http';
import { ExpressAdapter } from '@nestjs/platform-express';
import express from 'express';

/**
 * Nest's Express adapter with request and response objects that are born as Express wants them.
 *
 * Express gives every request and response the prototype of its own by `Object.setPrototypeOf`, which throws away what
 * V8 had learned of the object's shape and was the largest single cost of a request. Objects made with that prototype
 * leave it nothing to change. Nothing else differs.
 */
export class ExpressNativeAdapter extends ExpressAdapter {
  readonly #serverOptions: ServerOptions;

  constructor(serverOptions: ServerOptions) {
    super(express());
    this.#serverOptions = serverOptions;
  }

  override initHttpServer(): void {
    const app = this.getInstance<express.Express>();
    this.httpServer = createServer(
      {
        ...this.#serverOptions,
        IncomingMessage: bornAs(IncomingMessage, app.request),
        ServerResponse: bornAs(ServerResponse, app.response),
      } as ServerOptions,
      app,
    );
    // Node forgets the headers beyond 2,000, among them perhaps the second Authorization; their size is bounded anyway.
    this.httpServer.maxHeadersCount = 0;
  }
}

/** A constructor of what `base` makes, with `prototype` in place of its own. */
function bornAs<Base extends typeof IncomingMessage | typeof ServerResponse>(
  base: Base,
  prototype: object,
): Base {
  function Born(this: object, ...args: unknown[]): void {
    // Node's two classes are functions, which an object of another prototype may be handed to.
    Reflect.apply(base, this, args);
  }
  Born.prototype = prototype;
  return Born as unknown as Base;
}
