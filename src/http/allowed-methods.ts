import type { Express, NextFunction, Request, Response } from 'express';
import { Failure } from '../errors/failure.js';
import { sendFailure } from '../errors/send-failure.js';
import { layersOf, type Layer } from './route-layers.js';

/**
 * Answers OPTIONS, and with 405 every method that the path does not have, on every path that has a route. Both answers
 * list the path's methods in `Allow` (RFC 9110 sections 9.3.7 and 15.5.6).
 */
export function allowedMethods(app: Express) {
  let methodsOf: ((path: string) => ReadonlySet<string>) | undefined;

  return (request: Request, response: Response, next: NextFunction): void => {
    methodsOf ??= methodsByPath(layersOf(app).filter(({ route }) => route !== undefined));
    const { method, path } = request;
    const allowed = methodsOf(path);
    if (allowed.size === 0 || allowed.has(method)) {
      next();
      return;
    }
    const Allow = [...allowed, 'OPTIONS'].join(', ');
    if (method === 'OPTIONS') {
      response.writeHead(204, { Allow }).end();
      return;
    }
    const message = `This path allows only ${[...allowed].join(', ')}`;
    sendFailure(response, new Failure(405, message, { headers: { Allow } }));
  };
}

/**
 * The methods of literal paths are kept, which saves a create 7 % of its CPU. Those of any other path are looked up in
 * the routes with parameters.
 */
function methodsByPath(layers: Layer[]): (path: string) => ReadonlySet<string> {
  const methodsAt = (path: string) =>
    new Set(layers.filter((layer) => matches(layer, path)).flatMap(methodsOf));
  const paths = layers.flatMap(({ route }) => (typeof route?.path === 'string' ? [route.path] : []));
  const known = new Map(paths.map((path) => [path, methodsAt(path)]));
  return (path) => known.get(path) ?? methodsAt(path);
}

function methodsOf({ route }: Layer): string[] {
  return Object.keys(route?.methods ?? {}).flatMap((method) =>
    method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()],
  );
}

function matches(layer: Layer, path: string): boolean {
  try {
    return layer.match(path) !== false;
  } catch {
    // The path has an invalid percent-encoding. The router finds this too and refuses the request.
    return false;
  }
}
