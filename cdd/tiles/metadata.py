"""What zarr.json of an array says, once the core has checked it."""

from typing import Any

import numpy as np

from cdd.dtypes import DType, code_of, named


class Metadata:
    def __init__(self, json: dict[str, Any]) -> None:
        self.shape = tuple(json["shape"])
        self.shard = tuple(json["chunk_grid"]["configuration"]["chunk_shape"])
        codecs = json["codecs"]
        sharding = codecs[0]["configuration"] if codecs[0]["name"] == "sharding_indexed" else None
        self.is_sharded = sharding is not None
        self.tile = tuple(sharding["chunk_shape"]) if sharding else self.shard
        self.codecs: list[dict[str, Any]] = sharding["codecs"] if sharding else codecs
        self.index_location = sharding["index_location"] if sharding else None
        self.data_type = _dtype_name(json["data_type"])
        self.attributes: dict[str, Any] = json["attributes"]
        self.dimension_names: list[str | None] | None = json.get("dimension_names")
        self.fill_value: Any = json["fill_value"]

    @property
    def dtype_code(self) -> int:
        return code_of(named(self.data_type))

    @property
    def packing(self) -> str:
        for codec in self.codecs[1:]:
            if codec["name"] in ("blosc", "zstd"):
                return " ".join(
                    [codec["name"], *([codec["configuration"]["cname"]] if codec["name"] == "blosc" else [])]
                )
        return "raw"

    def fill_item(self, dtype: DType) -> Any:
        """One item, from its JSON: a number, a bool, "NaN", "NaT", "0x7fc0", or two of them."""
        value = self.fill_value
        if dtype.kind in "mM":
            return np.array(value, np.int64 if value != "NaT" else dtype).view(dtype)[()]
        if dtype.kind == "c":
            half = np.dtype(f"f{dtype.itemsize // 2}")
            return dtype.type(complex(*(float(_float_of(part, half)) for part in value)))
        return _float_of(value, dtype) if isinstance(value, str) else np.array(value).astype(dtype)[()]

    @property
    def codec_text(self) -> str:
        """The chain as one line: "blosc(zstd, shuffle) + crc32c"."""
        parts = []
        for codec in self.codecs[1:]:
            given = codec.get("configuration", {})
            inside = [str(given[name]) for name in ("cname", "shuffle", "level") if name in given]
            parts.append(f"{codec['name']}({', '.join(inside)})" if inside else codec["name"])
        return " + ".join(parts) or "raw"


def _dtype_name(data_type: Any) -> str:
    """What NumPy calls it: a name, or {"name": "numpy.datetime64", "configuration": {"unit": "ns", ...}}."""
    if isinstance(data_type, str):
        return data_type
    name = str(data_type["name"]).removeprefix("numpy.")
    unit = data_type.get("configuration", {}).get("unit", "generic")
    return name if unit == "generic" else f"{name}[{unit}]"


def _float_of(value: Any, dtype: DType) -> Any:
    if isinstance(value, str) and value.startswith("0x"):
        return np.array(int(value, 16), f"u{dtype.itemsize}").view(dtype)[()]
    return np.array(float(value)).astype(dtype)[()]
