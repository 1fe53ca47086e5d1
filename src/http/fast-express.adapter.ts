import { createServer, IncomingMessage, ServerResponse, type Server, type ServerOptions } from 'node:http';
import { ExpressAdapter } from '@nestjs/platform-express';
import type express from 'express';
import { Answer } from './answer.js';
import { withCommonHeaders } from './common-headers.js';
import { routeLiteralPaths } from './literal-routes.js';
import { sendJson } from '../errors/send-json.js';

/**
 * Connections that the kernel may keep until they are accepted; it has a limit of its own, 4,096 by default. Node's 511
 * overflow when a gateway opens its connections at once, and a client whose SYN was dropped waits 1, 3 or 7 seconds.
 */
const BACKLOG = 4_096;

/**
 * Nest's Express adapter with request and response objects that are born as Express wants them, a short way to the
 * routes, and a short way back. It changes no answer.
 *
 * Express gives every request and response the prototype of its own by `Object.setPrototypeOf`, which throws away what
 * V8 had learned of the object's shape and was the largest single cost of a request. Where Express's prototypes are those
 * of the classes that the server makes its objects from, there is nothing to change.
 */
export class FastExpressAdapter extends ExpressAdapter {
  readonly #serverOptions: ServerOptions;

  constructor(app: express.Express, serverOptions: ServerOptions) {
    super(app);
    this.#serverOptions = serverOptions;
  }

  override initHttpServer(): void {
    const app = this.getInstance<express.Express>();
    // Classes that extend Node's, since V8 knows of such how many members to make room for. Objects of another function
    // that Node's classes are applied to soon become dictionaries, whose every member is slow to reach.
    class NativeRequest extends IncomingMessage {}
    class NativeResponse extends ServerResponse {
      override writeHead(...head: unknown[]): this {
        return super.writeHead(...(withCommonHeaders(this, head) as Parameters<ServerResponse['writeHead']>));
      }
    }
    Object.setPrototypeOf(NativeRequest.prototype, app.request);
    Object.setPrototypeOf(NativeResponse.prototype, app.response);
    app.request = NativeRequest.prototype as express.Request;
    app.response = NativeResponse.prototype as express.Response;
    this.httpServer = createServer(
      {
        ...this.#serverOptions,
        IncomingMessage: NativeRequest,
        ServerResponse: NativeResponse,
      } as ServerOptions,
      routeLiteralPaths(app),
    );
    // Node forgets the headers beyond 2,000, among them perhaps the second Authorization; their size is bounded anyway.
    this.httpServer.maxHeadersCount = 0;
  }

  /** Plain objects, as handlers return them, go without what Express looks at for each answer and nothing here uses. */
  override reply(response: ServerResponse, body: unknown, status = response.statusCode): void {
    if (body instanceof Answer)
      sendJson(response, status, body.body as object, body.headers as Record<string, string>);
    else if (isPlainObject(body)) sendJson(response, status, body);
    else super.reply(response, body, status);
  }

  override listen(port: string | number, host?: string | (() => void), callback?: () => void): Server {
    if (typeof host === 'function') return this.listen(port, undefined, host);
    return this.httpServer.listen({ port: Number(port), host, backlog: BACKLOG }, callback);
  }
}

function isPlainObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
