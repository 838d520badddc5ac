// Random orders of the instances of a set.

/** Return a generator of uniform numbers in [0, 1) (mulberry32). */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Return a random order of the positions; pinned positions keep their place. */
export function shuffled(size, pinned, random) {
  const free = [];
  for (let i = 0; i < size; i += 1) if (!pinned[i]) free.push(i);
  const drawn = [...free];
  for (let i = drawn.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [drawn[i], drawn[j]] = [drawn[j], drawn[i]];
  }
  const order = [];
  for (let i = 0; i < size; i += 1) order.push(i);
  free.forEach((place, n) => {
    order[place] = drawn[n];
  });
  return order;
}

/** Return an order in which the free positions are read backwards. */
export function reversed(order, pinned) {
  const places = order.map((_, place) => place).filter((place) => !pinned[place]);
  const found = [...order];
  places.forEach((place, n) => {
    found[place] = order[places[places.length - 1 - n]];
  });
  return found;
}

/** Return `count` orders: the present one first, then random ones in pairs with their reverse. */
export function draw(size, count, pinned, seed = 0) {
  const random = generator(seed);
  const given = [];
  for (let i = 0; i < size; i += 1) given.push(i);
  const orders = [given];
  while (orders.length < count) {
    const last = orders.length % 2 ? reversed(orders[orders.length - 1], pinned) : null;
    orders.push(last ?? shuffled(size, pinned, random));
  }
  return orders.slice(0, count);
}
