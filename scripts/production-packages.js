import { existsSync, readFileSync } from 'node:fs';

const readJson = (path) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));

/** Read in the package's Readme.md, its package.json telling none. */
const TOLD_ELSEWHERE = { 'pause@0.0.1': 'MIT' };

/** This project's own manifest. */
export const manifest = readJson('package.json');

const locked = readJson('package-lock.json').packages;

/**
 * What `npm ci --omit=dev` installs, as the lock file has it. (`npm sbom --omit dev` of npm 11.19 leaves out half of
 * it, direct dependencies among them.) `uses` has the paths of the packages that one depends on.
 */
export const productionPackages = Object.entries(locked)
  .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
  .map(([path, entry]) => {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const id = `${name}@${entry.version}`;
    const licence = entry.license ?? licenceInOldForm(path) ?? TOLD_ELSEWHERE[id] ?? 'not told';
    return { path, name, version: entry.version, id, licence, integrity: entry.integrity, uses: uses(path) };
  });

/** Packages of before 2015 tell their licences in a list, which the lock file leaves out. */
function licenceInOldForm(path) {
  const file = `${path}/package.json`;
  const { licenses } = existsSync(new URL(`../${file}`, import.meta.url)) ? readJson(file) : {};
  return licenses?.map(({ type }) => type).join(' OR ');
}

/** @returns the paths of a package's dependencies, found as Node.js finds them; `''` is the project itself. */
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
