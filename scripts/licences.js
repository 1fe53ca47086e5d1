// Lists the licences of the production dependencies. Fails if one is not permissive or unknown.
import { productionPackages } from './production-packages.js';

/** SPDX identifiers of licences that only require that notices are kept. */
const PERMISSIVE = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'PSF-2.0',
  'Python-2.0',
  'Unlicense',
];

/** Of `A OR B` one must be permissive, of `A AND B` both. */
function isPermissive(licence) {
  const alternatives = licence.replace(/[()]/g, '').split(' OR ');
  return alternatives.some((all) => all.split(' AND ').every((one) => PERMISSIVE.includes(one)));
}

const byLicence = new Map();
for (const { id, licence } of productionPackages) {
  byLicence.set(licence, [...(byLicence.get(licence) ?? []), id]);
}
for (const [licence, ids] of [...byLicence].sort()) {
  console.log(`${licence} (${ids.length})\n  ${ids.join('\n  ')}`);
}

const refused = productionPackages.filter(({ licence }) => !isPermissive(licence));
if (refused.length > 0) {
  console.error(`Not permissive: ${refused.map(({ id, licence }) => `${id} (${licence})`).join(', ')}`);
  process.exit(1);
}
