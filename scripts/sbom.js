// Prints a bill of materials of the production dependencies, from the lock file, as CycloneDX 1.6.
import { Buffer } from 'node:buffer';
import { manifest, productionPackages, uses } from './production-packages.js';

const purl = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`;
const refs = new Map(productionPackages.map(({ path, name, version }) => [path, purl(name, version)]));
const own = purl(manifest.name, manifest.version);

const licences = (licence) =>
  / (OR|AND) /.test(licence) ? [{ expression: licence }] : [{ license: { id: licence } }];

const components = productionPackages.map(({ path, name, version, licence, integrity }) => {
  const [algorithm, digest] = integrity.split('-', 2);
  return {
    type: 'library',
    'bom-ref': refs.get(path),
    name,
    version,
    purl: refs.get(path),
    licenses: licences(licence),
    hashes: [
      { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') },
    ],
  };
});

const dependsOn = (paths) => [...new Set(paths.map((path) => refs.get(path)).filter((ref) => ref))].sort();
const edges = new Map([[own, dependsOn(uses(''))]]);
for (const { path, uses: used } of productionPackages) {
  edges.set(refs.get(path), dependsOn([...used]));
}

console.log(
  JSON.stringify(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      version: 1,
      metadata: {
        component: {
          type: 'application',
          'bom-ref': own,
          name: manifest.name,
          version: manifest.version,
          purl: own,
          licenses: licences(manifest.license),
        },
      },
      // The same version of a package may be installed in several places.
      components: [...new Map(components.map((component) => [component.purl, component])).values()],
      dependencies: [...edges].map(([ref, on]) => ({ ref, dependsOn: on })),
    },
    null,
    2,
  ),
);
