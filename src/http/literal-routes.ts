import type { RequestListener } from 'node:http';
import type { Express, NextFunction, Request, Response } from 'express';

/** What Express's router has for each middleware and each route, and does not declare. */
interface Layer {
  /** Whether it is a middleware for every path. */
  slash: boolean;
  route?: { path: unknown; methods: Record<string, boolean>; _handlesMethod(method: string): boolean };
  match(path: string): unknown;
  handleRequest(request: Request, response: Response, next: NextFunction): void;
  handleError(error: unknown, request: Request, response: Response, next: NextFunction): void;
}

type Chains = Map<string, Map<string, Layer[]>>;

/** Of such a path the router matches nothing but itself. */
const LITERAL_PATH = /^\/[\w/.-]*$/;

/**
 * Express, with a short way for requests whose target is the path of a route as it is written: the layers that its
 * router would find for them, by a walk through all of its layers at each request, are looked for once. They run as the
 * router runs them. Every other request takes Express's own way.
 *
 * @param app an Express application with `case sensitive routing` and `strict routing`, that is complete when the first
 *   request comes, and whose last layers answer whatever is left over, as Nest's do.
 */
export function routeLiteralPaths(app: Express): RequestListener {
  let chains: Chains | undefined;

  return (incoming, outgoing) => {
    chains ??= chainsOf(app.router.stack as unknown as Layer[]);
    const chain = chains.get(incoming.url as string)?.get(incoming.method as string);
    if (chain === undefined) {
      app(incoming, outgoing);
      return;
    }
    const request = incoming as Request;
    const response = outgoing as Response;
    // What Express does for each request.
    Object.setPrototypeOf(request, app.request);
    Object.setPrototypeOf(response, app.response);
    request.res = response;
    response.req = request;
    response.locals = Object.create(null) as Response['locals'];
    request.baseUrl = '';
    request.originalUrl = request.url;
    request.params = {};
    walk(chain, request, response);
  };
}

function walk(chain: Layer[], request: Request, response: Response): void {
  let index = 0;
  const next = (error?: unknown): void => {
    const layer = chain[index++];
    if (layer === undefined) response.destroy();
    else if (!error || error === 'route') layer.handleRequest(request, response, next);
    else layer.handleError(error, request, response, next);
  };
  request.next = next;
  next();
}

function chainsOf(layers: Layer[]): Chains {
  const chains: Chains = new Map();
  for (const { route } of layers) {
    if (route === undefined || typeof route.path !== 'string' || !LITERAL_PATH.test(route.path)) continue;
    const { path, methods } = route;
    const ofPath = chains.get(path) ?? new Map<string, Layer[]>();
    for (const method of Object.keys(methods)) {
      const chain = layers.filter(
        (layer) =>
          layer.match(path) !== false && (layer.route === undefined || layer.route._handlesMethod(method)),
      );
      // A middleware of a part of the path sees another path, and a route with parameters sees these.
      if (chain.every((layer) => layer.slash || layer.route?.path === path)) {
        ofPath.set(method.toUpperCase(), chain);
      }
    }
    chains.set(path, ofPath);
  }
  return chains;
}
