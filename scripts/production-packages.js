import { existsSync, readFileSync } from 'node:fs';

const readJson = (path) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));

/** From the packages' readme files, because their manifests name no licence. */
const TOLD_ELSEWHERE = { 'pause@0.0.1': 'MIT' };

/** This project's own manifest. */
export const manifest = readJson('package.json');

const locked = readJson('package-lock.json').packages;

/**
 * What `npm ci --omit=dev --omit=optional` installs, from the lock file: `npm sbom --omit dev` of npm 11.19 omits half
 * of it, including direct dependencies. `uses` has the paths of a package's dependencies.
 */
export const productionPackages = Object.entries(locked)
  .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
  .map(([path, entry]) => {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const id = `${name}@${entry.version}`;
    const licence = entry.license ?? licenceInOldForm(path) ?? TOLD_ELSEWHERE[id] ?? 'unknown';
    return { path, name, version: entry.version, id, licence, integrity: entry.integrity, uses: uses(path) };
  });

/** Packages from before 2015 list their licences in a form that the lock file omits. */
function licenceInOldForm(path) {
  const file = `${path}/package.json`;
  const { licenses } = existsSync(new URL(`../${file}`, import.meta.url)) ? readJson(file) : {};
  return licenses?.map(({ type }) => type).join(' OR ');
}

/** @returns the paths of a package's dependencies, resolved as Node.js does. The path `''` is the project itself. */
export function uses(path) {
  const { dependencies, optionalDependencies, peerDependencies } = locked[path];
  const names = Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
  return names.map((name) => resolve(path, name)).filter((found) => found !== undefined);
}

function resolve(path, name) {
  for (let folder = path; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/node_modules/'), 0))) {
    const candidate = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (locked[candidate] !== undefined) return candidate;
    if (folder === '') return undefined;
  }
}
