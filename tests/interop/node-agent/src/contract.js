// The contract folder: which types there are, who may send them, their shapes, and the limits.

import { readFileSync, readdirSync } from 'node:fs';
import { Schemas } from './schema.js';

const FOLDER = new URL('../../../../contract/la-protocol-v2/', import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8'));

export class Contract {
  #files;
  #schemas;

  constructor() {
    const index = read('index.json');
    this.types = index.types;
    this.limits = index.limits;
    const names = readdirSync(FOLDER).filter((name) => name.endsWith('.schema.json'));
    this.#files = new Map(names.map((name) => [name, read(name)]));
    this.#schemas = new Schemas(this.#files);
  }

  isKnown(type) { return typeof type === 'string' && Object.hasOwn(this.types, type); }
  isControl(type) { return this.types[type].control; }
  isSigned(type) { return this.types[type].signed; }
  mayComeFromControlPlane(type) { return this.types[type].direction !== 'la-to-cp'; }

  holds(frame) { return this.#schemas.holds(`${frame.type}.schema.json`, frame); }

  // Whether `value` may stand as `member` of the payload of `type`.
  holdsMember(type, member, value) {
    return this.#schemas.holds(`${type}.schema.json#/properties/payload/properties/${member}`, value);
  }

  membersOf(type) { return Object.keys(this.#files.get(`${type}.schema.json`).properties.payload.properties); }
}
