# Leaves out of llama.cpp what toolsrv never loads: pictures and sound, and the tools' common library.
# Taken by CMAKE_ARGS=-DCMAKE_PROJECT_INCLUDE=<this file> when llama-cpp-python is compiled.
set(LLAVA_BUILD OFF)
set(LLAMA_BUILD_COMMON OFF)
