"""Small folders of feature files, as TRIDENT, CLAM and STAMP write them."""

import h5py
import numpy as np

SIDE = 256


def slide(seed: int, *, label: int, width: int = 6, rows: int = 12) -> tuple[np.ndarray, ...]:
    """Features of a grid of tiles; those of positive slides are larger in a corner."""
    draw = np.random.default_rng(seed)
    places = np.stack(np.meshgrid(np.arange(4), np.arange(rows // 4)), -1).reshape(-1, 2)
    x = draw.normal(size=(len(places), width))
    x[places.sum(1) < 2, 0] += 4 * label
    return x.astype(np.float16), (places * SIDE).astype(np.int64)


def write_trident(path, x, coords) -> None:
    with h5py.File(path, "w") as file:
        file["features"] = x
        file["coords"] = coords
        file["coords"].attrs["patch_size_level0"] = SIDE
        file["coords"].attrs["level0_width"] = 4 * SIDE


def write_clam(path, x, coords) -> None:
    with h5py.File(path, "w") as file:
        file["features"], file["coords"] = x, coords


def write_stamp(path, x, coords) -> None:
    with h5py.File(path, "w") as file:
        file["feats"], file["coords"] = x, coords / 2.0
        file.attrs["tile_size_um"], file.attrs["unit"] = SIDE / 2, "um"


def write_zarr(path, x, coords) -> None:
    import zarr

    group = zarr.open_group(path, mode="w")
    group["features"], group["coords"] = x, coords
    group["coords"].attrs["patch_size_level0"] = SIDE


def write_npy(path, x, coords) -> None:
    np.save(path, x)


def write_npz(path, x, coords) -> None:
    np.savez(path, features=x, coords=coords)


WRITERS = {
    "trident": (".h5", write_trident), "clam": (".h5", write_clam), "stamp": (".h5", write_stamp),
    "zarr": (".zarr", write_zarr), "npy": (".npy", write_npy), "npz": (".npz", write_npz),
}  # fmt: skip


def make_folder(folder, *, sets: int = 24, kind: str = "trident", width: int = 6):
    """Write slides s0, s1, … and a table of their labels; return the table and the folder."""
    suffix, write = WRITERS[kind]
    features = folder / "features"
    features.mkdir(parents=True)
    lines = ["slide_id,patient,grade"]
    for k in range(sets):
        x, coords = slide(k, label=k % 2, width=width, rows=8 + 4 * (k % 3))
        write(features / f"s{k}{suffix}", x, coords)
        lines.append(f"s{k},p{k // 2 if sets > 30 else k},{'high' if k % 2 else 'low'}")
    table = folder / "clini.csv"
    table.write_text("\n".join(lines) + "\n")
    return table, features
